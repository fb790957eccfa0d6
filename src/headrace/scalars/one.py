from headrace.oracle.scalar import evaluate_batch
from headrace.serve.values import batch_of_values, rows_of_values
def compile_row(exprs, schema):
    types, names = [f.type for f in schema.fields], schema.names
    def of(values):
        b = batch_of_values(types, names, values)
        return rows_of_values(evaluate_batch(list(exprs), schema, b))[0] if exprs else ()
    return of
