"""opencl_client as a scheduled program, by both routes."""
from harness import Client, check

ROUTES = {"layer": "OPENCL_LAYERS", "preload": "LD_PRELOAD"}


class OpenClClient(Client):
    def __init__(self, place, what, route, device="pthread", priority=0, prefix=()):
        shim = str(place.lib / "libshimopencl.so")
        self.start(place, [*prefix, str(place.bin / "opencl_client"), what],
                   {"POCL_DEVICES": device, ROUTES[route]: shim, "XSCHED_AUTO_XQUEUE": "ON", "XSCHED_AUTO_XQUEUE_PRIORITY": str(priority)})

    def lines_at_end(self, seconds=30):
        code = self.process.wait(seconds)
        self.reader.join()
        text = self.process.stderr.read()
        check(code == 0, f"it ends well: {code} {self.lines} {text}")
        check("xsched:" not in text, f"without a word: {text}")
        return self.lines
