"""The formats of other packages. Each has a module, which is imported when it is used."""
