#!/usr/bin/env python3
"""Opens pages in Chromium (Debian's package chromium) without a window: nothing is reported as wrong, and the document has all pictures
and tables. For people to look at, screenshots in light and dark and a PDF as printed are left in the folder of the pages.

    browser_test.py PAGE…
"""
import pathlib
import re
import subprocess
import sys
import tempfile

BROWSER = "chromium"
IN_ALL = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
          "--enable-logging=stderr", "--virtual-time-budget=2000")


def browse(page, *options):
    with tempfile.TemporaryDirectory(prefix="xsched-browser-") as profile:
        return subprocess.run([BROWSER, *IN_ALL, f"--user-data-dir={profile}", *options, page.resolve().as_uri()], capture_output=True,
                              text=True, timeout=120)


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def test(page):
    source = page.read_text(encoding="utf-8")
    outcome = browse(page, "--dump-dom")
    messages = re.findall(r".*CONSOLE.*", outcome.stderr)
    check(outcome.returncode == 0 and not messages, f"{page}: the console has nothing: {outcome.returncode}, {messages}")
    for tag in ("svg", "table", "caption", "figure", "h1", "rect", "circle"):
        shown, written = (len(re.findall(rf"<{tag}[ >]", text)) for text in (outcome.stdout, source))
        check(shown == written, f"{page}: the document has each {tag}: {shown} of {written}")
    for name, options in (("light", ()), ("dark", ("--force-dark-mode", "--blink-settings=preferredColorScheme=0")),
                          ("narrow", ("--window-size=420,1600",))):
        picture = page.with_suffix(f".{name}.png")
        browse(page, f"--screenshot={picture}", *([] if name == "narrow" else ["--window-size=1100,1600"]), *options)
        check(picture.exists() and picture.stat().st_size > 5000, f"{picture} is a picture")
    paper = page.with_suffix(".pdf")
    browse(page, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    check(paper.exists() and paper.read_bytes().startswith(b"%PDF"), f"{paper} is a document")
    print(f"passed: {page}")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        test(pathlib.Path(argument))
