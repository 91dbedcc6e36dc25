"""A server by which an assistant asks this tool: the Model Context Protocol over stdio."""
