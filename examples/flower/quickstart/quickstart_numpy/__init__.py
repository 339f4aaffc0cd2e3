"""NumPy on Flower: the application of Flower's quickstart-numpy, with a secure sum."""
