"""The methods that come with the library: with an entry here, every command knows a method."""

from __future__ import annotations

from eber.methods.method import Method

NO_MODEL, POOL = "No model", "Pool"
"""What every other method has to beat, and the one that is made of others."""

THE_PAPERS = (
    Method(
        "EBER",
        "eber.estimators:EBERClassifier",
        "environments change the distribution of a latent z; says which environments a row resembles",
        "Slavutsky, Shen, Wu & Blei 2026",
        simplicity=4,
        by_default=True,
        in_paper=True,
    ),
    Method(
        "ERM",
        "eber.estimators:ERMClassifier",
        "a network on all rows pooled, whatever their environment: what the others have to beat",
        simplicity=1,
        by_default=True,
        in_paper=True,
    ),
    Method(
        "IRM",
        "eber.estimators:IRMClassifier",
        "a representation on which one classifier is best in every environment",
        "Arjovsky et al. 2019",
        penalty_parameter="penalty_weight",
        in_paper=True,
    ),
    Method(
        "V-REx",
        "eber.estimators:VRExClassifier",
        "risks that differ little between environments",
        "Krueger et al. 2021",
        penalty_parameter="penalty_weight",
        in_paper=True,
    ),
    Method(
        "Fishr",
        "eber.estimators:FishrClassifier",
        "gradients that vary alike in every environment",
        "Rame et al. 2022",
        penalty_parameter="penalty_weight",
        in_paper=True,
    ),
)

FURTHER_BASELINES = (
    Method(
        "GroupDRO",
        "eber.estimators:GroupDROClassifier",
        "weights environments by their risk, so that the worst is not left behind",
        "Sagawa et al. 2020",
        penalty_parameter="step_size",
        penalty_grid=(0.001, 0.01, 0.1),
    ),
    Method(
        "CORAL",
        "eber.estimators:CORALClassifier",
        "features with the same means and covariances in every environment",
        "Sun & Saenko 2016",
        penalty_parameter="penalty_weight",
        penalty_grid=(0.1, 1.0, 10.0),
    ),
    Method(
        "MMD",
        "eber.estimators:MMDClassifier",
        "features with the same distribution in every environment",
        "Li et al. 2018",
        penalty_parameter="penalty_weight",
        penalty_grid=(0.1, 1.0, 10.0),
    ),
    Method(
        "SD",
        "eber.estimators:SDClassifier",
        "small logits, so that one easy feature does not keep others from being learned",
        "Pezeshki et al. 2021",
        penalty_parameter="penalty_weight",
        penalty_grid=(0.001, 0.01, 0.1),
    ),
    Method(
        "ANDMask",
        "eber.estimators:ANDMaskClassifier",
        "steps only where the gradients of environments agree in sign",
        "Parascandolo et al. 2021",
        penalty_parameter="agreement",
        penalty_grid=(0.3, 0.6, 1.0),
    ),
    Method(
        "IGA",
        "eber.estimators:IGAClassifier",
        "gradients that are alike in every environment",
        "Koyama & Yamaguchi 2021",
        penalty_parameter="penalty_weight",
        penalty_grid=(0.01, 0.1, 1.0),
    ),
    Method(
        "IB-ERM",
        "eber.estimators:IBERMClassifier",
        "features that carry no more of x than labels need",
        "Ahuja et al. 2021",
        penalty_parameter="penalty_weight",
        penalty_grid=(0.1, 1.0, 10.0),
    ),
    Method(
        "IB-IRM",
        "eber.estimators:IBIRMClassifier",
        "IRM on features that carry no more of x than labels need",
        "Ahuja et al. 2021",
        penalty_parameter="penalty_weight",
        penalty_grid=(1.0, 10.0, 100.0),
    ),
    Method(
        "EQRM",
        "eber.estimators:EQRMClassifier",
        "a quantile of the environments' risks: most new environments shall do well",
        "Eastwood et al. 2022",
        penalty_parameter="quantile",
        penalty_grid=(0.5, 0.75, 0.9),
    ),
)

REFERENCES = (
    Method(
        NO_MODEL,
        "sklearn.dummy:DummyClassifier",
        "the training environments' share of each class, whatever the row: what a model has to beat",
        simplicity=-1,
        by_default=True,
    ),
    Method(
        "Logistic regression",
        "sklearn.linear_model:LogisticRegression",
        "the reference that everybody can read",
        simplicity=0,
        by_default=True,
    ),
    Method(
        "Gradient boosting",
        "sklearn.ensemble:HistGradientBoostingClassifier",
        "the reference that is hard to beat on tables",
        simplicity=2,
        by_default=True,
    ),
    Method(
        "Random forest",
        "eber.estimators.references:random_forest",
        "the reference that needs the least care",
        "Breiman 2001",
        simplicity=2,
        by_default=True,
    ),
    Method(
        "Gradient boosting with early stopping",
        "eber.estimators.references:gradient_boosting_early_stopping",
        "boosting that stops when a tenth of the rows, held out, gains no more",
        simplicity=3,
    ),
    Method(
        "XGBoost",
        "eber.estimators.references:xgboost_classifier",
        "boosting of another package, stopped in the same way",
        "Chen & Guestrin 2016",
        simplicity=3,
        package="xgboost",
    ),
    Method(
        "LightGBM",
        "eber.estimators.references:lightgbm_classifier",
        "boosting of another package, stopped in the same way",
        "Ke et al. 2017",
        simplicity=3,
        package="lightgbm",
    ),
    Method(
        POOL,
        "eber.tuning.pool:EnvironmentPool",
        "EBER, logistic regression, boosting and forest together, weighted by left-out environments",
        simplicity=6,
        by_default=True,
    ),
)

BUILT_IN = (*THE_PAPERS, *FURTHER_BASELINES, *REFERENCES)
"""All of them, in the order of the tables."""
