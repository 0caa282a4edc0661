"""Translates kafka-python's errors."""

from dataclasses import replace
from datetime import UTC, datetime

from kafka import errors as kafka_errors

from adapter.kafka.answers import Failure, FailureCause
from adapter.kafka.logins import LoginUnavailable
from adapter.kafka.paced_calls import BrokerTooSlow
from adapter.kafka.rotation import BrokerAccess
from adapter.kafka.tokens import TokenUnavailable
from adapter.kafka.versions import NotOffered, VersionsChanged
from adapter.tls import certificate_fault

REFUSED_CERTIFICATE = "refuses the client certificate"
REQUIRED_CERTIFICATE = "requires a client certificate (certFile and keyFile)"


def explained(error: BaseException, who: str, access: BrokerAccess | None) -> Failure:
    """Brokers report a missing client certificate as a bad one, and seldom what is wrong with one."""
    failure = failure_of(error, who)
    if access is None or failure.cause not in {FailureCause.TLS, FailureCause.CONNECTION}:
        return failure
    certificate = access.credentials.certificate
    if certificate is None and REFUSED_CERTIFICATE in failure.text:
        return replace(failure, text=f"{who} {REQUIRED_CERTIFICATE}")
    dates = certificate and certificate.expiry(datetime.now(UTC))
    return replace(failure, text=f"{failure.text} ({dates})") if dates else failure


def failure_of(error: BaseException, who: str) -> Failure:
    """Returns a word to count by and a sentence for people."""
    text = (
        str(error)
        .removeprefix(f"{type(error).__name__}: ")
        .removeprefix("KafkaConnectionError: ")
        .removeprefix("Handshake failed: ")
    )
    if fault := certificate_fault(text, "caFile"):
        return Failure(FailureCause.TLS, f"{who} {fault}")
    words = {"text": text.partition(": ")[2] or text, "whole": text}
    by_text = ((cause, said) for sign, cause, said in _SIGNS if sign in str(error))
    by_type = ((cause, said) for kinds, cause, said in _KINDS if isinstance(error, kinds))
    other = (FailureCause.OTHER, f"failed with {type(error).__name__}")
    cause, said = next(by_text, None) or next(by_type, other)
    return Failure(cause, f"{who} {said.format(**words)}", was_sent=not isinstance(error, _UNSENT))


_UNSENT = (kafka_errors.ThrottlingQuotaExceededError, BrokerTooSlow)
OVER_QUOTA = "throttles the adapter because a quota is used up"
_KINDS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], FailureCause, str], ...] = (
    ((kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError), FailureCause.TIMED_OUT, "does not answer"),
    (TokenUnavailable, FailureCause.AUTHENTICATION, "was not given a token: {whole}"),
    (LoginUnavailable, FailureCause.AUTHENTICATION, "was not given {whole}"),
    (kafka_errors.SaslAuthenticationFailedError, FailureCause.AUTHENTICATION, "refuses the credentials: {whole}"),
    (kafka_errors.UnsupportedSaslMechanismError, FailureCause.AUTHENTICATION, "does not offer {text}"),
    (kafka_errors.ThrottlingQuotaExceededError, FailureCause.THROTTLED, OVER_QUOTA),
    (UnicodeError, FailureCause.DNS, "cannot be found: its host name is invalid"),
    (NotOffered, FailureCause.VERSION, "{whole}"),
    (BrokerTooSlow, FailureCause.OTHER, "{whole}"),
    (VersionsChanged, FailureCause.CONNECTION, "was connected again and offers other versions of its requests"),
    (kafka_errors.IncompatibleBrokerVersion, FailureCause.VERSION, "offers no version of a request that is needed"),
    (
        (kafka_errors.InvalidReceiveError, kafka_errors.KafkaProtocolError, kafka_errors.CorrelationIdError),
        FailureCause.MALFORMED,
        "sent a malformed response, which is not Kafka's protocol",
    ),
    ((kafka_errors.NodeNotReadyError, kafka_errors.UnknownBrokerIdError), FailureCause.CONNECTION, "is not connected"),
    ((kafka_errors.KafkaConnectionError, OSError), FailureCause.CONNECTION, "closed the connection"),
)
NO_TLS = "closed the connection during the TLS handshake, as a port without TLS does"
_SIGNS = (
    ("DNS", FailureCause.DNS, "cannot be found: the name does not resolve"),
    ("ECONNREFUSED", FailureCause.REFUSED, "refuses the connection"),
    ("Connection refused", FailureCause.REFUSED, "refuses the connection"),
    ("Connection timed out", FailureCause.TIMED_OUT, "does not answer"),
    # The alerts with which a broker refuses our certificate.
    ("CERTIFICATE_REQUIRED", FailureCause.TLS, REQUIRED_CERTIFICATE),
    ("ALERT_CERTIFICATE_EXPIRED", FailureCause.TLS, f"{REFUSED_CERTIFICATE}: it has expired"),
    ("ALERT_UNKNOWN_CA", FailureCause.TLS, f"{REFUSED_CERTIFICATE}: its authority is not trusted there"),
    ("ALERT_CERTIFICATE_UNKNOWN", FailureCause.TLS, REFUSED_CERTIFICATE),
    ("ALERT_BAD_CERTIFICATE", FailureCause.TLS, REFUSED_CERTIFICATE),
    ("ALERT_ACCESS_DENIED", FailureCause.TLS, f"{REFUSED_CERTIFICATE}: access denied"),
    ("WRONG_VERSION_NUMBER", FailureCause.TLS, "does not speak TLS on this port"),
    ("RECORD_LAYER_FAILURE", FailureCause.TLS, "does not speak TLS on this port"),
    ("Handshake failed: [SSL: UNEXPECTED_EOF", FailureCause.TLS, NO_TLS),
    ("Handshake failed", FailureCause.TLS, "failed the TLS handshake: {whole}"),
    ("[SSL: ", FailureCause.TLS, "ended the TLS connection: {whole}"),
)
