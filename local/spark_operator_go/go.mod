// The Spark operator's source, of which the rig takes the definitions of its kinds. Nothing is built: no module that it
// needs is listed here, so that none is downloaded.
module kafka-lag-adapter/local/spark_operator_go

go 1.26.0

require github.com/kubeflow/spark-operator/v2 v2.4.0
