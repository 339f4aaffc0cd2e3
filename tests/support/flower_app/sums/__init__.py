"""Application of the network tests: updates that are known, and faults on demand."""
