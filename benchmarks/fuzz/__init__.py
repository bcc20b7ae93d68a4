"""Random and damaged inputs by the million, each of which must be refused in a sentence or be handled right."""
