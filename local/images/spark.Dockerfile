# Stands in for Spark's own image where there is no registry of images: Java and Spark as in the report's image, the user of
# Spark's image, and a Python without any package. What is given as arguments is run, as that image's entrypoint does it.
ARG PACKAGES
FROM ${PACKAGES}
RUN ln -s /opt/venv/lib/python*/site-packages/pyspark /opt/spark && useradd --system --uid 185 --gid 0 spark
ENV SPARK_HOME=/opt/spark PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
USER spark
ENTRYPOINT ["env"]
