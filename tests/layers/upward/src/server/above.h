// A header of a higher layer.
