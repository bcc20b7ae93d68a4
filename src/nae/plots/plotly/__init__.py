"""Draw layouts with plotly, for notebooks and web pages, with values on hover."""
