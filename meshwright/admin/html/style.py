"""Style sheet of the pages, and HTTP headers to forbid any other content.

The Content-Security-Policy permits one style sheet by hash, and scripts of this server only.
"""

import base64
import hashlib
from typing import Final

_COLOURS: Final = """
:root{color-scheme:light dark;--ground:#fff;--raised:#f6f8fa;--text:#1b1f24;--faint:#57606a;--line:#d0d7de;
--link:#0550ae;--focus:#8250df;--good:#0f5c2b;--good-g:#dafbe1;--warning:#6b4700;--warning-g:#fff3c4;
--bad:#a40e26;--bad-g:#ffe5e3;--plain:#3d4650;--plain-g:#eaeef2}
@media(prefers-color-scheme:dark){:root{--ground:#0d1117;--raised:#161b22;--text:#e6edf3;--faint:#9da7b3;
--line:#3d444d;--link:#79b8ff;--focus:#d2a8ff;--good:#7ee2a0;--good-g:#12321f;--warning:#f2cc60;
--warning-g:#3a2d0a;--bad:#ffa198;--bad-g:#4a1518;--plain:#c5ced8;--plain-g:#262c36}}
"""
_PAGE: Final = """
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,sans-serif;margin:0;color:var(--text);background:var(--ground)}
header{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;align-items:baseline;padding:.6rem 1.25rem;
background:var(--raised);border-bottom:1px solid var(--line)}
nav{display:flex;flex-wrap:wrap;gap:.1rem;font-size:14px;flex:1 1 0;min-width:min(100%,24rem)}
nav a{padding:.25rem .4rem;border-radius:6px;text-decoration:none;color:var(--text);white-space:nowrap}
nav a:hover{text-decoration:underline}
nav a[aria-current]{background:var(--plain-g);font-weight:600}
main{padding:1rem 1.25rem 2rem;max-width:96rem;margin:0 auto}
footer{padding:.5rem 1.25rem;border-top:1px solid var(--line);color:var(--faint);font-size:13px}
footer p{margin:0}
footer button{font-size:13px;padding:0 .6rem}
a{color:var(--link)}
:focus-visible{outline:3px solid var(--focus);outline-offset:2px;border-radius:3px}
.skip{position:absolute;left:-99rem}
.skip:focus{left:1rem;top:.5rem;background:var(--ground);padding:.4rem .8rem;z-index:1}
h1{font-size:1.6rem;line-height:1.25;margin:.3rem 0}
h2{font-size:1.15rem;margin:1.8rem 0 .5rem}
h3{font-size:1rem;margin:1.2rem 0 .3rem}
.subject{font-size:1.1rem;font-weight:600;margin:0 0 .6rem}
.shows,.empty,.none{color:var(--faint)}
.verdict{margin:.7rem 0;padding:.6rem .9rem;border-left:5px solid;border-radius:4px;font-size:1.05rem}
.verdict.good{background:var(--good-g);border-color:var(--good)}
.verdict.warning{background:var(--warning-g);border-color:var(--warning)}
.verdict.bad{background:var(--bad-g);border-color:var(--bad)}
.verdict.plain{background:var(--plain-g);border-color:var(--plain)}
.badge{display:inline-block;padding:0 .5rem;border-radius:999px;border:1px solid;font-size:13px;
font-weight:600;white-space:nowrap}
.badge.good{color:var(--good);background:var(--good-g)}
.badge.warning{color:var(--warning);background:var(--warning-g)}
.badge.bad{color:var(--bad);background:var(--bad-g)}
.badge.plain{color:var(--plain);background:var(--plain-g)}
time span,b,.whole{white-space:nowrap}
code,pre{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{overflow:auto;max-height:36rem;margin:.4rem 0;padding:.7rem .9rem;background:var(--raised);
border:1px solid var(--line);border-radius:6px}
.copied{user-select:all}
.beside{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(30rem,100%),1fr));gap:0 1.5rem}
.beside>*{min-width:0}
.added{color:var(--good)}.removed{color:var(--bad)}.place{color:var(--faint)}
ul,ol{margin:.2rem 0;padding-left:1.2rem}
li{margin:.15rem 0}
details{margin:.15rem 0}
summary{cursor:pointer;color:var(--link)}
"""
_PARTS: Final = """
.table{overflow-x:auto;margin:.5rem 0 1rem;border:1px solid var(--line);border-radius:6px}
table{border-collapse:collapse;width:100%}
th,td{padding:.4rem .7rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
td ul{margin:0;padding-left:1rem}
th{background:var(--raised);font-weight:600;white-space:nowrap}
tbody tr:last-child td{border-bottom:0}
:target,:target td{background:var(--warning-g)}
dl{margin:.4rem 0;display:grid;grid-template-columns:minmax(7rem,max-content) minmax(0,1fr);gap:.15rem 1rem}
dl>div{display:contents}
dt{color:var(--faint)}
dd{margin:0;min-width:0;overflow-x:auto}
form{display:flex;flex-wrap:wrap;gap:.6rem 1rem;align-items:end;margin:.8rem 0;padding:.8rem .9rem;
background:var(--raised);border:1px solid var(--line);border-radius:6px}
label{display:grid;gap:.15rem;font-size:13px;color:var(--faint);flex:1 1 11rem;min-width:0}
form.wide{display:block}
textarea{min-height:12rem;font-family:ui-monospace,Menlo,Consolas,monospace;resize:vertical}
form.wide button{margin-top:.6rem}
input,select{font-family:inherit}
input,select,textarea{font-size:15px;width:100%;padding:.35rem .5rem;color:var(--text);
background:var(--ground);border:1px solid var(--faint);border-radius:5px}
::placeholder{color:var(--faint);opacity:1}
button{font:inherit;font-weight:600;padding:.4rem 1rem;border-radius:5px;border:1px solid var(--link);
background:var(--link);color:var(--ground);cursor:pointer}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(19rem,100%),1fr));gap:.8rem;
list-style:none;padding:0;margin:1rem 0}
.cards li{margin:0;padding:.7rem .9rem;border:1px solid var(--line);border-radius:6px;min-width:0}
.cards a{font-weight:600}
.cards p{margin:.25rem 0 0}
.picture{overflow:auto;max-height:48rem;margin:.6rem 0;border:1px solid var(--line);border-radius:6px;
background:var(--raised)}
.picture svg{display:block;margin:auto;font:13px system-ui,sans-serif}
.node rect{fill:var(--ground);stroke:var(--plain);stroke-width:1.5}
.node.good rect{stroke:var(--good)}
.node.warning rect{stroke:var(--warning);stroke-dasharray:7 3;stroke-width:2}
.node.bad rect{stroke:var(--bad);stroke-width:3;fill:var(--bad-g)}
.node.subject rect{fill:var(--plain-g)}
.node text{fill:var(--text)}.node .name{font-weight:600;fill:var(--link)}
.node .below{fill:var(--faint);font-size:12px}
.node:focus-visible rect{stroke:var(--focus);stroke-width:4}
.edge{fill:none;stroke:var(--plain);stroke-width:1.5}
.edge.good{stroke:var(--good)}.edge.warning{stroke:var(--warning);stroke-width:2.5}
.edge.bad{stroke:var(--bad);stroke-width:3.5}
.edge.unseen{stroke-dasharray:4 5}
.head.good{fill:var(--good)}.head.warning{fill:var(--warning)}
.head.bad{fill:var(--bad)}.head.plain{fill:var(--plain)}
.says text{fill:var(--text);font-size:12px;paint-order:stroke;stroke:var(--raised);stroke-width:4px}
.says.bad text{fill:var(--bad);font-weight:600}
.span rect{fill:var(--good-g);stroke:var(--good)}
.span.warning rect{fill:var(--warning-g);stroke:var(--warning);stroke-dasharray:7 3}
.span.bad rect{fill:var(--bad-g);stroke:var(--bad);stroke-width:2.5}
.timeline text{fill:var(--text)}.timeline .below{fill:var(--faint);font-size:12px}
.now{stroke:var(--focus);stroke-width:2}
.lock{fill:none;stroke:var(--good);stroke-width:1.3}
.tabs [aria-current]{font-weight:600;color:inherit;text-decoration:none}
.tabs{display:flex;flex-wrap:wrap;gap:.3rem 1rem;margin:.6rem 0}
"""
_NARROW: Final = """
@media(max-width:720px){
header,main,footer{padding-left:.9rem;padding-right:.9rem}
.table{border:0;overflow-x:visible}
table,tbody,tr,td{display:block}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
tr{border:1px solid var(--line);border-radius:6px;margin:0 0 .7rem;padding:.25rem 0}
td{border:0;padding:.2rem .8rem;display:grid;grid-template-columns:6.5rem minmax(0,1fr);gap:.6rem}
td::before{content:attr(data-label);color:var(--faint);font-size:13px}
td>div{min-width:0;overflow-x:auto}
td td{padding:.1rem .4rem}
dl{grid-template-columns:minmax(0,8.5rem) minmax(0,1fr);gap:.2rem .8rem}
dl dl,td dl{grid-template-columns:minmax(0,1fr);gap:0}
dl dl{padding-left:.8rem;border-left:2px solid var(--line)}
td:has(details[open]),td:has(table){grid-template-columns:minmax(0,1fr)}
form label{flex-basis:100%}
}
"""
# The hash is over the exact text of the style element, so `frame` must insert STYLE unchanged.
STYLE: Final = (_COLOURS + _PAGE + _PARTS + _NARROW).replace("\n", "")
_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; script-src 'self'; "
    "connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
}
