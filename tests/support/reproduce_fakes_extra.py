"""A table that cannot be had for want of a package."""

from fedmf.errors import MissingExtra

raise MissingExtra("pip install scipy")
