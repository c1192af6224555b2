"""Adapters that store the state of agent frameworks in threads. Each needs its framework."""
