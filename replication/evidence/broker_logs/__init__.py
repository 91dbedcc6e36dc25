"""Text logs of brokers: layouts, the telling lines, and the facts that each line states."""
