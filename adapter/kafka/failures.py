"""Translates kafka-python's errors."""

from kafka import errors as kafka_errors

from adapter.kafka.answers import Failure
from adapter.kafka.logins import LoginUnavailable
from adapter.kafka.tokens import TokenUnavailable
from adapter.tls import certificate_fault

REFUSED_CERTIFICATE = "refuses the client certificate"
REQUIRED_CERTIFICATE = "requires a client certificate (certFile and keyFile)"


def failure_of(error: BaseException, who: str) -> Failure:
    """Returns a word to count by and a sentence for people."""
    text = (
        str(error)
        .removeprefix(f"{type(error).__name__}: ")
        .removeprefix("KafkaConnectionError: ")
        .removeprefix("Handshake failed: ")
    )
    if fault := certificate_fault(text, "caFile"):
        return Failure("tls", f"{who} {fault}")
    words = {"text": text.partition(": ")[2] or text, "whole": text}
    by_text = ((cause, said) for sign, cause, said in _SIGNS if sign in str(error))
    by_type = ((cause, said) for kinds, cause, said in _KINDS if isinstance(error, kinds))
    cause, said = next(by_text, None) or next(by_type, None) or ("other", f"failed with {type(error).__name__}")
    return Failure(cause, f"{who} {said.format(**words)}")


_KINDS: tuple[tuple[tuple[type[BaseException], ...], str, str], ...] = (
    ((kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError), "timed_out", "does not answer"),
    ((TokenUnavailable,), "authentication", "was not given a token: {whole}"),
    ((LoginUnavailable,), "authentication", "was not given {whole}"),
    ((kafka_errors.SaslAuthenticationFailedError,), "authentication", "refuses the credentials: {whole}"),
    ((kafka_errors.UnsupportedSaslMechanismError,), "authentication", "does not offer {text}"),
    ((kafka_errors.ThrottlingQuotaExceededError,), "throttled", "throttles the adapter because a quota is used up"),
    ((UnicodeError,), "dns", "cannot be found: its host name is invalid"),
    ((kafka_errors.IncompatibleBrokerVersion,), "version", "is too old: Kafka 3.0 or newer is needed"),
    (
        (kafka_errors.InvalidReceiveError, kafka_errors.KafkaProtocolError, kafka_errors.CorrelationIdError),
        "malformed",
        "sent a malformed response, which is not Kafka's protocol",
    ),
    ((kafka_errors.NodeNotReadyError, kafka_errors.UnknownBrokerIdError), "connection", "is not connected"),
    ((kafka_errors.KafkaConnectionError, OSError), "connection", "closed the connection"),
)
NO_TLS = "closed the connection during the TLS handshake, as a port without TLS does"
_SIGNS = (
    ("DNS", "dns", "cannot be found: the name does not resolve"),
    ("ECONNREFUSED", "refused", "refuses the connection"),
    ("Connection refused", "refused", "refuses the connection"),
    ("Connection timed out", "timed_out", "does not answer"),
    # The alerts with which a broker refuses our certificate.
    ("CERTIFICATE_REQUIRED", "tls", REQUIRED_CERTIFICATE),
    ("ALERT_CERTIFICATE_EXPIRED", "tls", f"{REFUSED_CERTIFICATE}: it has expired"),
    ("ALERT_UNKNOWN_CA", "tls", f"{REFUSED_CERTIFICATE}: its authority is not trusted there"),
    ("ALERT_CERTIFICATE_UNKNOWN", "tls", REFUSED_CERTIFICATE),
    ("ALERT_BAD_CERTIFICATE", "tls", REFUSED_CERTIFICATE),
    ("ALERT_ACCESS_DENIED", "tls", f"{REFUSED_CERTIFICATE}: access denied"),
    ("WRONG_VERSION_NUMBER", "tls", "does not speak TLS on this port"),
    ("RECORD_LAYER_FAILURE", "tls", "does not speak TLS on this port"),
    ("Handshake failed: [SSL: UNEXPECTED_EOF", "tls", NO_TLS),
    ("Handshake failed", "tls", "failed the TLS handshake: {whole}"),
    ("[SSL: ", "tls", "ended the TLS connection: {whole}"),
)
