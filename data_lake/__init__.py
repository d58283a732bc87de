"""The lake: refs, slots, Lance tables, sources, preprocessing, packing and the loader."""
