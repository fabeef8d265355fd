"""From notebooks to a book: execute chapters with papermill, cache, collect, render; sweeps.

==============  =============================================================================
`project`       the folders of a project, its chapters and their parameters
`keys`          what an execution depends on, as one hash
`execution`     one notebook through papermill, with a report if a cell fails
`runner`        many notebooks: in parallel, cached, resumable; `progress` shows how far they are
`outputs`       what an executed notebook holds: checks, records, provenance, the page
`pages`         the pages collected from all chapters: claims and status
`render`        Jupyter Book, only when something changed; `links` finds broken links
`build`         all of it, for the command ``preflearn build``
`sweep`         one chapter over a grid of parameters, one table
==============  =============================================================================
"""
