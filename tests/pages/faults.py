"""A page with a fault for each rule; words of the fault mark its finding."""

import re

from pages.builds import contents

CHAPTER = next(f"{name}.html" for name in contents() if name.startswith("chapters/01_"))
TINY = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 300 100'%3E"
    "%3Cg id='text_1'%3E%3Cg transform='translate(9 50) scale(0.02 -0.02)'/%3E%3C/g%3E%3C/svg%3E"
)
SHRUNK = TINY.replace("300 100", "900 100").replace("0.02 -0.02", "0.12 -0.12")
FAULTS = {
    "errors": '<script>console.error("fault-errors")</script>',
    "foreign": '<img src="http://fault-foreign.invalid/x.png" alt="A picture of another host">',
    "failed": '<img src="fault-failed.png" alt="A picture that is not there">',
    "landing": """<script>
        addEventListener("load", () => scrollTo({ top: 0, behavior: "instant" }))
        </script><div style="height: 3000px"></div>
        <p id="fault-landing">A reader who follows a link ends elsewhere.</p>""",
    "anchors": '<p id="fault-anchors" style="display: none">Hidden</p>',
    "behind": '<p id="fault-behind" style="scroll-margin-top: -3rem">Behind the header</p>',
    "leaves": '<p id="fault-leaves" style="width: 3000px; max-width: none">A long way</p>',
    "spills": """<table id="fault-spills" style="display: table; width: 115%">
        <tr><td>Wide</td></tr></table>""",
    "cut": """<div id="fault-cut" style="width: 3em; overflow: hidden; white-space: nowrap">
        Half is seen</div>
        <div id="fault-cut-height" style="height: 1em; overflow: hidden">One line<br>of two</div>""",
    "uncued": """<div id="fault-uncued" style="width: 2em; overflow: auto; white-space: nowrap">
        Read on</div>""",
    "reading": """<h5 id="fault-reading-level">A heading that skips a level</h5>
        <h1 id="fault-reading-title">A second title</h1>
        <nav id="fault-reading-landmark">A landmark without a label</nav><nav>Another one</nav>
        <svg role="img" id="fault-reading-text" width="9" height="9"></svg>
        <div style="display: flex; flex-direction: column-reverse"><p>Read first</p>
        <p id="fault-reading-order">Read second, but above the first</p></div>""",
    "letters": f'<figure id="fault-letters"><img src="{TINY}" width="300" alt="Tiny"></figure>'
    f'<figure id="fault-letters-shrunk"><img src="{SHRUNK}" style="width: 100%" alt="Wide"></figure>',
    "focus": """<div id="fault-focus" style="height: 3em; overflow: auto">
        <p>No key</p><p>reaches it</p><p>to scroll</p></div>""",
    "axe": '<button id="fault-axe"></button>',
    "colors": '<p id="fault-colors" style="color: #bbb; background: #fff">Pale</p>',
    "light": '<p id="fault-light">Pale in the light</p>',
    "dark": '<p id="fault-dark">Pale in the dark</p>',
}
STYLES = """<style>
#fault-numbers { position: relative }
#fault-numbers .eqno { position: absolute; left: 50% }
[data-theme=light] #fault-light { color: #aaa; background: #fff }
[data-theme=dark] #fault-dark { color: #555; background: #222 }
</style>"""
FINE = """<p id="fine-anchors">Shown</p>
<div id="fine-uncued" tabindex="0" style="width: 9em; overflow: auto; white-space: nowrap;
box-shadow: inset -9px 0 9px gray">A shadow says that there is more</div>"""
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')


def with_faults(book, folder, faults):
    """Return the name and the text of a page with faults; link what it loads."""
    text = (book / CHAPTER).read_text("utf-8")
    begin = text.index("</h1>", text.index("<article")) + len("</h1>")
    (folder / CHAPTER).parent.mkdir(parents=True)
    for part in ("_static", "_images"):
        (folder / part).symlink_to(book.resolve() / part)
    return CHAPTER, text[:begin] + faults + text[begin:]
