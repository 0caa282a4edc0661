"""Translates kafka-python's errors."""

from kafka import errors as kafka_errors

from adapter.kafka.answers import Failure


def failure_of(error: BaseException, who: str) -> Failure:
    """Returns a word to count by and a sentence for people."""
    text = str(error)
    words = {"text": text.removeprefix("KafkaConnectionError: ").removeprefix("Handshake failed: ")}
    by_type = ((cause, said) for kinds, cause, said in _KINDS if isinstance(error, kinds))
    by_text = ((cause, said) for sign, cause, said in _SIGNS if sign in text)
    cause, said = next(by_text, None) or next(by_type, None) or ("other", f"failed with {type(error).__name__}")
    return Failure(cause, f"{who} {said.format(**words)}")


_KINDS: tuple[tuple[tuple[type[BaseException], ...], str, str], ...] = (
    ((kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError), "timed_out", "does not answer"),
    (
        (kafka_errors.SaslAuthenticationFailedError, kafka_errors.UnsupportedSaslMechanismError),
        "authentication",
        "refuses the credentials: {text}",
    ),
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
_SIGNS = (
    ("DNS", "dns", "cannot be found: the name does not resolve"),
    ("ECONNREFUSED", "refused", "refuses the connection"),
    ("Connection refused", "refused", "refuses the connection"),
    ("Connection timed out", "timed_out", "does not answer"),
    ("Handshake failed", "tls", "failed the TLS handshake: {text}"),
)
