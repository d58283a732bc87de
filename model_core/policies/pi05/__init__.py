"""The π0.5 shape: views and text as a prefix, actions as a flow-matching suffix with an expert of its own."""
