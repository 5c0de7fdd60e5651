"""Plain data to show: what a canvas draws of a model, and how a moment of a run restyles it.

The way from a model to a picture::

    folding = default_folding(model)                    # engine.view.folding: what is drawn as one box
    view = graph_view(model, folding, root="main")      # engine.view.graph: nodes, clusters and edges, laid out once
    dot = dot_text(view)                                # engine.view.dot: text for Graphviz
    overlay = overlay_at(run, view)                # engine.view.overlay: restyles the same picture at the cursor
    render(view, "svg")                                 # engine.view.render: a standalone file through the `dot` program

A click on a box or a cluster header gives a static address; ``toggle(model, folding, address)`` gives the next folding.
"""
