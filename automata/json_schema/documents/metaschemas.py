"""The meta-schemas of all drafts, to which schemas may refer.

They are the official documents, in ``official_metaschemas/`` with their license, as files under the paths of their
URIs. A file is read on first use.
"""

from __future__ import annotations

import importlib.resources
import json
import re
from functools import lru_cache
from typing import Any

_FOLDER = importlib.resources.files("tokenfst.automata.json_schema.documents").joinpath(
    "official_metaschemas"
)
_URI = re.compile(
    r"https?://json-schema\.org/(draft-0[467]/schema|draft/20(?:19-09|20-12)/(?:schema|meta/[a-z-]+)|schema)"
)
_LATEST = "draft/2020-12/schema"


@lru_cache(maxsize=64)
def metaschema(uri: str) -> Any:
    """The official document with this URI (without a fragment), ``http`` or ``https``; ``None`` if there is none.
    Shared: must not be modified.
    """
    known = _URI.fullmatch(uri)
    if known is None:
        return None
    path = _LATEST if known[1] == "schema" else known[1]
    file = _FOLDER.joinpath(*f"{path}.json".split("/"))
    return json.loads(file.read_text("utf-8")) if file.is_file() else None
