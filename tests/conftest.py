"""Settings that every test shares."""

from hypothesis import settings

# A shared two-core machine stalls for seconds: deadlines would fail at random, so there are none.
# A failure prints the blob that repeats it.
settings.register_profile("house", deadline=None, print_blob=True)
settings.load_profile("house")
