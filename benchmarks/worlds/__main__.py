"""`python -m benchmarks.worlds`"""

from benchmarks.worlds.run import main

main()
