"""Makes every TLS context, so that all connections verify certificates by the same rules; says what they refuse."""

import ssl


def client_context() -> ssl.SSLContext:
    """Returns a context that requires a certificate for the requested name. It trusts no CA yet."""
    return _verifying(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def server_context() -> ssl.SSLContext:
    """Returns a context that does not ask for client certificates yet."""
    context = _verifying(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    # OpenSSL keeps sessions of TLS 1.2 with the client's certificates after their connections have ended.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # All clients have it. Of OpenSSL's own choice, the largest finite field costs 99 ms of CPU for a hello of 1.2 KB.
    context.set_ecdh_curve("prime256v1")
    return context


def _verifying(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Go and Java accept any certificate of a bundle as a root, even one signed by another CA.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # Many clusters and companies have CAs without key identifiers. Go and Java accept these, but the strictness that
    # Python's default contexts have since 3.13 does not. Signatures, names, dates and usages are checked without it.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def certificate_fault(error: object, authorities: str) -> str:
    """Returns what is wrong with a server's certificate as the end of a sentence about the server, or an empty string.

    Libraries pass OpenSSL's words on in errors of their own. `authorities` says where the trusted CAs are set."""
    text = str(error)
    host = text.partition("not valid for '")[2].partition("'")[0]
    said = next((said for sign, said in _FAULTS if sign in text), "")
    return said.format(host=host, authorities=authorities)


_UNKNOWN_CA = "has a certificate of an authority that is not trusted here ({authorities})"
_FAULTS = (
    ("certificate is not valid for", "has a certificate that does not cover the host name {host}"),
    ("certificate has expired", "has a certificate that has expired"),
    ("certificate is not yet valid", "has a certificate that is not yet valid"),
    ("self-signed certificate", _UNKNOWN_CA),
    ("unable to get local issuer certificate", _UNKNOWN_CA),
    ("unable to get issuer certificate", _UNKNOWN_CA),
    # The trusted CA has the same name and another key, as after a cluster was created again.
    ("certificate signature failure", _UNKNOWN_CA),
)
