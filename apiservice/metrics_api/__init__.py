"""An API group of metrics over HTTP: values, discovery, OpenAPI and selectors."""
