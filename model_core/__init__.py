"""Policies, attention, training, quantisation and simulators; knows nothing of the lake or the orchestrator."""
