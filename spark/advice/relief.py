"""Pure: whether more replicas help a group that falls behind, by what one member does for each partition."""

import math
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.capacity_words import without_capacity
from spark.advice.demand import Load, production_of
from spark.advice.incidents.hot import hot_partition
from spark.figures import formatting
from spark.figures.model import Group, TopicFigures
from spark.figures.periods import median


def relief(group: Group, load: Load, zone: ZoneInfo) -> str:
    """What a person does. More replicas are asked for only where they are enough, as far as it was measured."""
    hot = hot_partition(group, load, zone=zone)
    if hot is not None and not hot.is_over and (load.capacity is None or hot.is_cause):
        return "Spread the keys over the partitions first; more replicas do not help its hot partition."
    if load.most_members > load.partitions:
        return "More replicas may help, or faster work; which member reads what is not known."
    if load.members_now is not None and load.members_now >= load.most_members:
        return (
            "It already has as many members as can have a partition: give it more partitions, or make its work faster."
        )
    return _by_capacity(group, load)


def _by_capacity(group: Group, load: Load) -> str:
    most, each = formatting.plural(load.most_members, "member"), load.advised
    if each is None or math.isnan(load.peak):
        return f"More replicas may help: {most} can have a partition. {without_capacity(load)}"
    together = f"together they do {formatting.rate(load.most_members * each)}"
    able = (
        f"{most} can have a partition, and {together if load.most_members > 1 else f'it does {formatting.rate(each)}'}"
    )
    brought = f"the busiest hour brought {formatting.rate(load.peak)}"
    if load.peak > load.most_members * each:
        return f"Give it more partitions, or make its work faster: {able}; {brought}."
    busiest = max(_of_busiest_partition(topic) for topic in group.topics)
    if busiest > each:
        return (
            "Spread the keys over the partitions, or make its work faster: in the busiest hour, one partition got "
            f"about {formatting.rate(busiest)}, and a member does {formatting.rate(each)}."
        )
    return f"Give it more replicas, up to {load.most_members}: {able}; {brought}."


def _of_busiest_partition(topic: TopicFigures) -> float:
    """Messages per second in the topic's busiest hour, by its share in the median hour; 0 where it is not known."""
    share = median(topic.hours.skew[topic.hours.produced > 0])
    return float(np.nan_to_num(share * production_of(topic.hours).max()))
