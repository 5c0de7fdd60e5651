"""Models that scikit-learn, LightGBM and XGBoost were exported to, with what the libraries
themselves predict; see ``make.py``.
"""
