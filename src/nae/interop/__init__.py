"""Other packages' formats, one module each, imported where they are used."""
