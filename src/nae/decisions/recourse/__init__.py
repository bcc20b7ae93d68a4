"""What would have to change: the cheapest changes of a few features that reach a target, with a proof."""
