"""What every part of the settings has in common."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class SettingsPart(BaseModel):
    """Frozen and strict about keys, because a misspelt key would silently watch something else."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=False, validate_by_alias=True
    )
