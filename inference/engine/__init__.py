"""From requests to tokens: decoder, KV pages, scheduler, sampler, engine, residency and the worker thread."""
