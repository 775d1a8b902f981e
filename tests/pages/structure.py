"""What is true of every page that XSched writes. The pages are XML as well as HTML, so Python's parser reads them."""
import re
import xml.etree.ElementTree

HEADINGS = ("h1", "h2", "h3", "h4")
WITHOUT_MOUSE = ("onclick", "onmouseover", "onmouseenter", "title")  # attributes whose effect a reader without a mouse misses


def faults(text):
    """What is wrong with a page, in words."""
    if not text.startswith("<!doctype html>\n"):
        return ["it does not begin as HTML"]
    root = xml.etree.ElementTree.fromstring(text.split("\n", 1)[1])
    return [*document_faults(root), *reader_faults(root), *(fault for svg in root.iter("svg") for fault in picture_faults(svg))]


def document_faults(root):
    if root.get("lang") is None:
        yield "it does not say its language"
    if not (root.findtext("head/title") or "").strip():
        yield "it has no title"
    style = root.findtext("head/style") or ""
    for part in ("prefers-color-scheme: dark", "@media print", "color-scheme: light dark"):
        if part not in style:
            yield f"its style has no {part}"
    for element in root.iter():
        if element.tag in ("script", "link", "img", "iframe"):
            yield f"it has a {element.tag}"
        for name in ("src", "href"):
            if not element.get(name, "#").startswith("#"):
                yield f"it needs {element.get(name)}"
    if re.search(r"url\(|@import", style):
        yield "its style needs another file"


def reader_faults(root):
    levels = [HEADINGS.index(element.tag) for element in root.iter() if element.tag in HEADINGS]
    if levels.count(0) != 1 or levels[0] != 0 or any(after > before + 1 for before, after in zip(levels, levels[1:])):
        yield f"its headings have no order: {levels}"
    for element in root.iter():
        for name in WITHOUT_MOUSE:
            if element.get(name) is not None:
                yield f"{element.tag} has {name}"
    for table in root.iter("table"):
        if not (table.findtext("caption") or "").strip():
            yield "a table has no caption"
        if any(cell.get("scope") is None for cell in table.iter("th")):
            yield "a heading of a table has no scope"
        columns = {len(list(row)) for row in table.iter("tr")}
        if len(columns) > 1:
            yield f"rows of a table have different numbers of cells: {columns}"
    for region in (element for element in root.iter("div") if element.get("class") == "scroll"):
        if region.get("tabindex") != "0" or not region.get("aria-label"):
            yield "what can be scrolled cannot be reached by keyboard"


def picture_faults(svg):
    children = list(svg)
    if svg.get("role") != "img":
        yield "a picture has no role"
    if [child.tag for child in children[:2]] != ["title", "desc"] or not all((child.text or "").strip() for child in children[:2]):
        yield "a picture does not begin with its title and description"
    if len(children) < 3:
        yield "a picture is empty"
    left, top, width, height = map(float, svg.get("viewBox").split())
    for element in svg.iter():
        for name, low, high in (("x", left, width), ("cx", left, width), ("y", top, height), ("cy", top, height)):
            if not low <= float(element.get(name, low)) <= high:
                yield f"{element.tag} is outside of its picture: {element.attrib}"
