#!/bin/sh
# Makes the six attachments of datasets/gaia-sample that are not plain text, in the current folder:
# LibreOffice writes solar.xlsx, minutes.docx, harvest.pptx and pump_leaflet.pdf from flat ODF, Python's
# zipfile writes rain.zip, gnuplot writes catch.png.  The results differ in their dates alone; they are
# kept in git because these programs are not there everywhere.
#
#   tests/data/sample/make.sh      (Debian: libreoffice-calc-nogui libreoffice-writer-nogui
#                                   libreoffice-impress-nogui gnuplot-nox python3)
set -eu

python3 - <<'PY'
import zipfile
SPACES = " ".join('xmlns:%s="urn:oasis:names:tc:opendocument:xmlns:%s:1.0"' % pair for pair in [
    ("office", "office"), ("table", "table"), ("text", "text"), ("style", "style"), ("draw", "drawing"),
    ("svg", "svg-compatible"), ("presentation", "presentation"), ("fo", "xsl-fo-compatible")])

def flat(name, kind, body):
    with open(name, "w", encoding="utf-8") as f:
        f.write('<?xml version="1.0" encoding="UTF-8"?>\n<office:document %s office:version="1.3" '
                'office:mimetype="application/vnd.oasis.opendocument.%s"><office:body>%s</office:body>'
                '</office:document>\n' % (SPACES, kind, body))

def cell(value):
    if isinstance(value, str):
        return '<table:table-cell office:value-type="string"><text:p>%s</text:p></table:table-cell>' % value
    return ('<table:table-cell office:value-type="float" office:value="%s"><text:p>%s</text:p></table:table-cell>'
            % (value, value))

def table(name, rows):
    lines = "".join("<table:table-row>%s</table:table-row>" % "".join(cell(v) for v in row) for row in rows)
    return ('<table:table table:name="%s"><table:table-column table:number-columns-repeated="%d"/>%s</table:table>'
            % (name, len(rows[0]), lines))

sites = [["site", "roof_m2", "since"], ["Quarry", 410, 2019], ["Mill", 265, 2021], ["School", 530, 2017]]
yields = [["site", "Jan", "Feb", "Mar", "Apr", "May", "Jun"],
          ["Quarry", 1804, 2630, 4415, 6102, 7298, 7511], ["Mill", 1166, 1702, 2871, 3960, 4718, 4889],
          ["School", 2291, 3388, 5702, 7893, 9417, 9702]]
flat("solar.fods", "spreadsheet",
     "<office:spreadsheet>%s%s</office:spreadsheet>" % (table("Sites", sites), table("Yield", yields)))

def p(text): return "<text:p>%s</text:p>" % text
def h(text): return '<text:h text:outline-level="1">%s</text:h>' % text
votes = [["Motion", "For", "Against", "Abstained"], ["New boathouse", "31", "14", "6"],
         ["Higher fee", "27", "22", "2"], ["Sunday training", "40", "3", "8"]]
flat("minutes.fodt", "text", "<office:text>%s</office:text>" % "".join([
    h("Minutes of the rowing club"), p("Held in the club room; 51 members were present."),
    p("The treasurer reported a surplus of 1,240 euros. Three motions were put to the vote:"),
    table("Votes", votes), p("The meeting closed at 21:40.")]))

flat("pump_leaflet.fodt", "text", "<office:text>%s</office:text>" % "".join([
    p("Pumps of the P series: care"),
    p("Keep the inlet free of sand. Close the valve before you open the housing."),
    p("Pump P20: change the filter every 480 hours of use."),
    p("Pump P40: change the filter every 640 hours of use."),
    p("Pump P60: change the filter every 900 hours of use."), p("Bearings"),
    p("Grease the bearings each time the filter is changed for the third time.")]))

def frame(kind, y, lines):
    return ('<draw:frame presentation:class="%s" svg:x="2cm" svg:y="%scm" svg:width="20cm" svg:height="4cm">'
            "<draw:text-box>%s</draw:text-box></draw:frame>" % (kind, y, "".join(p(t) for t in lines)))

def slide(n, title, lines, notes):
    return ('<draw:page draw:name="page%d">%s%s<presentation:notes>%s</presentation:notes></draw:page>'
            % (n, frame("title", 1, [title]), frame("subtitle", 6, lines), frame("notes", 1, [notes])))

flat("harvest.fodp", "presentation", "<office:presentation>%s</office:presentation>" % "".join([
    slide(1, "The orchard's year", ["A report to the members"], "Greet the guests."),
    slide(2, "Apples", ["Harvest: 86 tonnes", "Sold fresh: 61 tonnes"], "The rest went to the press."),
    slide(3, "Pears", ["Harvest: 34 tonnes", "Lost to frost in April: 12 tonnes"], "Show the picture of the night."),
    slide(4, "Plums", ["Harvest: 9 tonnes", "Lost to wasps: 2 tonnes"], "Traps are on order.")]))

rain = {"harbour.csv": [3.2, 0, 11.4, 6.1, 0, 2.7, 8.8], "summit.csv": [5.9, 1.3, 14.2, 9.6, 0.4, 0, 7.5],
        "valley.csv": [2.1, 0, 18.3, 4.4, 0, 3.9, 9.2]}
with zipfile.ZipFile("rain.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for name, days in sorted(rain.items()):
        rows = ["day,rain_mm"] + ["2026-05-%02d,%s" % (4 + i, mm) for i, mm in enumerate(days)]
        z.writestr(zipfile.ZipInfo(name, (2026, 5, 11, 8, 0, 0)), "\n".join(rows) + "\n", zipfile.ZIP_DEFLATED)
PY

convert() { soffice --headless --convert-to "$1" "$2" >/dev/null 2>&1 && rm "$2"; }
convert xlsx solar.fods
convert docx minutes.fodt
convert pptx harvest.fodp
convert pdf pump_leaflet.fodt

gnuplot <<'GP'
set terminal png size 240,180 small
set output "catch.png"
set title "Catch of the boats, tonnes"
set style fill solid
set boxwidth 0.6
unset key
set yrange [0:50]
unset xtics
$boats << END
1 23 0xd02020
2 41 0x209020
3 35 0x2040d0
4 18 0xf0a000
END
plot $boats using 1:2:3 with boxes linecolor rgb variable
GP
