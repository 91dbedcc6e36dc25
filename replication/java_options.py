"""How Java runs what ends within a minute."""

# The code that the second compiler makes would not pay, nor several threads that collect garbage.
# Place for all compiled code and all classes from the start: the first compiler alone has little,
# and sweeps it.
QUICKLY = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=400m"
)
