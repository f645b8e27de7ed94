"""A Spark session for the tests, in local mode, where Java and pyspark are found."""

import importlib.util
import os
import shutil
import sys
from contextlib import contextmanager


def missing() -> str | None:
    """Why there is no Spark to test with; None if there is."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed (vitrail[spark])"
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        return "Java is not installed here (Debian: openjdk-17-jre-headless)"
    return None


@contextmanager
def running(folder):
    """A session whose tasks may fail and are run again, with an event log in ``folder / "events"``."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    from pyspark.sql import SparkSession

    (folder / "events").mkdir()
    settings = {
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.catalogImplementation": "in-memory",
    }
    builder = SparkSession.builder.master("local[2, 4]").appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()
