"""Commands about the local computer: ``serving`` and ``exploring`` answer requests until they are interrupted;
``doctor`` reports what is installed.
"""
