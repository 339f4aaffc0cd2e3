"""scikit-learn on Flower: logistic regression on pictures of digits, which scikit-learn has."""
