"""Rules about the code itself: layers, sizes, names, what may be imported, fresh documents."""
