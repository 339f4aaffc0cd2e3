"""The commands of ``fedmf``, a file each."""
