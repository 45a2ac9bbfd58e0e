"""Commands about the local machine: ``serving`` and ``exploring`` answer requests until they are interrupted;
``doctor`` reports what is installed.
"""
