"""A drill: load with an acknowledgement log, faults, collection, `diagnose`: was anything lost?"""
