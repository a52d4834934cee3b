"""PDFs as small as they can be, written by hand."""

from __future__ import annotations

import zlib


def pdf(
    *texts: str, title: str | None = None, packed: bytes | None = None, unicode: bytes | None = None
) -> bytes:
    """A PDF with a line of text on each page; `packed` is the compressed content of all pages
    instead, `unicode` what glyphs mean.
    """
    objects: list[bytes] = []
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(texts)))
    objects.append(b"<< /Type /Catalog /Pages 2 0 R >>")
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(texts)} >>".encode())
    meaning = b"" if unicode is None else b" /ToUnicode %d 0 R" % (4 + 2 * len(texts))
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica%s >>" % meaning)
    for n, text in enumerate(texts):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 100] /Contents {5 + 2 * n} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        content = (
            packed
            if packed is not None
            else zlib.compress(f"BT /F1 12 Tf 10 50 Td ({text}) Tj ET".encode())
        )
        objects.append(
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream"
            % (len(content), content)
        )
    if unicode is not None:
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(unicode), unicode))
    if title is not None:
        objects.append(f"<< /Title ({title}) >>".encode())
    made = bytearray(b"%PDF-1.4\n")
    places = []
    for number, one in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    start = len(made)
    made += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    made += b"".join(b"%010d 00000 n \n" % place for place in places)
    info = b" /Info %d 0 R" % len(objects) if title is not None else b""
    return bytes(made) + b"trailer\n<< /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        info,
        start,
    )
