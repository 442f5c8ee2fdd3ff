"""Charts over time: drawn here as SVG, in the page as they are; no script and no library has to draw them.

All charts of a page have one time axis. Shapes are paths in a box of fixed size that the page stretches to its width;
texts are HTML beside and above them, so that a chart is readable at any width, on paper too.

* ``scale``   values to heights, and the ticks of both axes
* ``paths``   numbers to the shortest path that draws them: steps, lines, areas, strokes
* ``panel``   what a chart consists of: panels with layers and notes
"""
