"""Tests of the plots of dev/bench, and of the plots in the documents."""

import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from plot import svg, ticks  # noqa: E402

DOCS = pathlib.Path(__file__).parents[3] / "docs"
PAGE = DOCS / "internals" / "benchmarks.md"
SVG = "{http://www.w3.org/2000/svg}"


class PlotTests(unittest.TestCase):
    def setUp(self):
        self.root = xml.fromstring(svg("Cost <of> a push", "µs", "{:.1f}", [("A & B", 4, 2), ("C", 8, 2), ("D", 0.1, None)], "floor"))
        self.bars = [one for one in self.root.iter(SVG + "rect") if one.get("class") == "bar"]
        self.texts = [one.text for one in self.root.iter(SVG + "text")]

    def marks(self):
        # The last mark is in the legend.
        return [one for one in self.root.iter(SVG + "line") if one.get("class") == "mark"][:-1]

    def test_title_labels_values_unit_and_the_meaning_of_a_mark_are_there(self):
        for words in ("Cost <of> a push", "A & B", "C", "4.0", "8.0", "0.1", "µs", "floor"):
            self.assertIn(words, self.texts)

    def test_title_and_numbers_can_be_read_aloud(self):
        self.assertEqual(self.root.find(SVG + "title").text, "Cost <of> a push")
        self.assertEqual(self.root.find(SVG + "desc").text, "A & B: 4.0 (floor: 2.0); C: 8.0 (floor: 2.0); D: 0.1")

    def test_lengths_are_proportional_to_values(self):
        lengths = [float(bar.get("width")) for bar in self.bars]
        self.assertAlmostEqual(lengths[1], 2 * lengths[0], delta=0.2)
        self.assertAlmostEqual(lengths[1], 80 * lengths[2], delta=8)

    def test_equal_marks_form_a_line_where_their_value_is(self):
        first, second = self.marks()
        self.assertEqual((first.get("x1"), first.get("y2")), (second.get("x1"), second.get("y1")))
        self.assertAlmostEqual(float(first.get("x1")) - float(self.bars[0].get("x")), float(self.bars[0].get("width")) / 2, delta=0.2)

    def test_the_axis_has_round_numbers_up_to_the_longest_bar(self):
        self.assertEqual(ticks(8), [0, 2, 4, 6, 8])
        self.assertEqual(ticks(235_000), [0, 50_000, 100_000, 150_000, 200_000, 250_000])
        for most in (0, 0.3, 1, 5.4, 6.2, 9.99, 10, 101, 105_400):
            self.assertTrue(most <= ticks(most)[-1] and len(ticks(most)) <= 7, most)

    def test_there_are_colours_for_dark_screens(self):
        self.assertIn("prefers-color-scheme: dark", self.root.find(SVG + "style").text)


class DocumentTests(unittest.TestCase):
    def test_each_number_of_a_documents_plot_is_in_the_document(self):
        page = PAGE.read_text(encoding="utf-8")
        plots = re.findall(r"\]\(\.\./images/([\w-]+\.svg)\)", page)
        self.assertTrue(plots)
        for name in plots:
            words = xml.parse(DOCS / "images" / name).getroot().find(SVG + "desc").text
            for value in re.findall(r"(?:^|; )[^:]+: ([\d,.]+)", words):
                self.assertIn(value, page, name)


if __name__ == "__main__":
    unittest.main()
