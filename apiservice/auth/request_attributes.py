"""Maps a request's method and path to the attributes of an access review, as kube-apiserver does.

https://kubernetes.io/docs/reference/access-authn-authz/authorization/#review-your-request-attributes"""

from apiservice.auth.caller import Attributes

_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PARTS_OF_A_NAMESPACE = ("status", "finalize")
_OF_COLLECTIONS = {"get": "list", "delete": "deletecollection"}


def attributes_of(method: str, path: str, is_watch: bool) -> Attributes:  # noqa: FBT001 - one of three facts, none a mode
    """Returns resource attributes below `/apis/GROUP/VERSION/`, otherwise the path's. Resources are lower-cased as in
    client-go."""
    parts = path.strip("/").split("/")
    if parts[0] != "apis" or len(parts) < 4:
        return Attributes(verb=method.lower(), path=path)
    _, group, version, *rest = parts
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        rest = rest[2:] if len(rest) > 2 and rest[2] not in _PARTS_OF_A_NAMESPACE else rest
    resource, name, subresource = (*rest, "", "")[:3]
    verb = _VERBS.get(method, method.lower())
    if not name:
        verb = "watch" if verb == "get" and is_watch else _OF_COLLECTIONS.get(verb, verb)
    return Attributes(
        verb=verb,
        path=path,
        namespace=namespace,
        group=group,
        version=version,
        resource=resource.lower(),
        name=name,
        subresource=subresource,
    )
