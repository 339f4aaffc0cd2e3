"""What an honest-but-curious server tries; `fedmf.attacks` is the way in."""
