"""From expressions to kernels.

``binding`` checks an expression against a schema and makes every coercion
explicit; the result is a tree of ``typed.Node``, which ``interpreter``
evaluates with pyarrow and the code generator turns into a kernel.
"""
