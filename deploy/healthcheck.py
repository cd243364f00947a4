"""Whether a server on this machine answers 200: `python3 healthcheck.py http://127.0.0.1:8080/health`.

For containers whose images have neither curl nor wget. Ends with status 1 if it does not.
"""

import sys
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

TIMEOUT = 3

# A proxy of the environment has no say in what this machine answers itself.
try:
    with build_opener(ProxyHandler({})).open(sys.argv[1], timeout=TIMEOUT) as answer:
        sys.exit(answer.status != 200)
except (URLError, OSError) as error:
    sys.exit(f"{sys.argv[1]}: {error}")
