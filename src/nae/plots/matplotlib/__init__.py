"""Draw layouts with matplotlib, for papers and print."""
