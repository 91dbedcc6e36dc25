"""The executable topic partition: clients, brokers and a controller that run the rules.

Scenario files drive it; random schedules and small worlds walk through it.
"""
